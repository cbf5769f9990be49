-- Every metric of a run that has current points has a profile, over all of them.
-- severity: error
-- blocking: true
with points as (
    select
        run_id,
        metric_id,
        count(*) as point_count
    from fct_metric
    where is_current
    group by run_id, metric_id
)

select
    points.run_id,
    points.metric_id,
    points.point_count,
    profiles.point_count as profiled_count
from points
left join mart_metric_profile as profiles
    on points.run_id = profiles.run_id and points.metric_id = profiles.metric_id
where profiles.point_count is distinct from points.point_count
