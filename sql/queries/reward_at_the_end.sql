-- What do the runs of a migration reach at the end: the mean reward of the last steps?
-- param metric: the metric = reward/avg_raw_reward
-- values metric: select metric from mart_metric_profile
-- param steps: number of last steps = 20
-- test: count(*) = 6 and bool_and(steps = 20)
-- test: bool_and(mean_value between -1 and 1)
with ranked as (
    select
        points.run_id,
        points.value,
        row_number() over (
            partition by points.run_id
            order by points.step desc
        ) as from_the_end
    from fct_metric as points
    inner join dim_metric as metrics on points.metric_id = metrics.metric_id
    where metrics.metric = $metric and points.is_current and points.value_kind = 'finite'
)

select
    runs.migration,
    runs.stack,
    runs.run_name,
    runs.role,
    count(*) as steps,
    avg(ranked.value) as mean_value,
    stddev_samp(ranked.value) as spread
from ranked
inner join dim_run as runs on ranked.run_id = runs.run_id
where ranked.from_the_end <= $steps::bigint
group by runs.migration, runs.stack, runs.run_name, runs.role
order by runs.migration asc, mean_value desc
