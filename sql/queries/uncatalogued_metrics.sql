-- Which logged metrics has nobody described yet?
-- test: count(*) = 0
-- planted: count(*) = 1 and any_value(metric) = 'time/step' and min(runs) = 6
select
    metrics.metric,
    metrics.category,
    metrics.stage,
    count(distinct points.run_id) as runs,
    count(*) as points,
    min(points.value) filter (where points.value_kind = 'finite') as smallest,
    max(points.value) filter (where points.value_kind = 'finite') as largest
from dim_metric as metrics
inner join fct_metric as points on metrics.metric_id = points.metric_id
where not metrics.is_catalogued
group by metrics.metric, metrics.category, metrics.stage
order by runs desc, metrics.metric asc
