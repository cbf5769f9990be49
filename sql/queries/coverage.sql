-- Which metrics to look at first does each run lack?
-- test: count(*) = 6
-- test: bool_and(focus_metrics_logged = focus_metrics and lacking is null)
-- planted: count(*) filter (where lacking like '%time/step%') = 1
with focus as (
    select
        metric_id,
        metric,
        focus_rank
    from dim_metric
    where focus_rank is not null
),

logged as (
    select distinct
        run_id,
        metric_id
    from fct_metric
    where is_current
)

select
    health.migration,
    health.run_name,
    health.step_count,
    health.missing_steps,
    health.metric_count,
    count(logged.metric_id) as focus_metrics_logged,
    count(*) as focus_metrics,
    string_agg(focus.metric, ', ' order by focus.focus_rank) filter (where logged.metric_id is null) as lacking
from mart_run_health as health
cross join focus
left join logged on health.run_id = logged.run_id and focus.metric_id = logged.metric_id
group by health.migration, health.run_name, health.step_count, health.missing_steps, health.metric_count
order by focus_metrics_logged, health.migration, health.run_name
