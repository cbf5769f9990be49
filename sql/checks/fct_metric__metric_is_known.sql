-- Every point belongs to a metric.
-- severity: error
-- blocking: true
select
    fct_metric.metric_id,
    count(*) as row_count
from fct_metric
left join dim_metric on fct_metric.metric_id = dim_metric.metric_id
where dim_metric.metric_id is null
group by fct_metric.metric_id
