-- Where do the logs hold NaN or infinities?
-- test: count(*) >= 1 and bool_and(run_name = 'npu_ess_overflow_at60')
-- test: sum(steps) = 91 and min(first_step) = 60
select
    runs.migration,
    runs.run_name,
    metrics.metric,
    points.value_kind,
    count(*) as steps,
    min(points.step) as first_step,
    max(points.step) as last_step,
    arg_min(points.source_file || ':' || points.source_position, points.step) as first_written_in
from fct_metric as points
inner join dim_run as runs on points.run_id = runs.run_id
inner join dim_metric as metrics on points.metric_id = metrics.metric_id
where points.is_current and points.value_kind not in ('finite', 'rewritten_suspect')
group by runs.migration, runs.run_name, metrics.metric, points.value_kind
order by runs.migration, runs.run_name, first_step, metrics.metric
