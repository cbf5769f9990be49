-- Every run and metric of the bridge exists.
-- severity: error
-- blocking: true
select
    bridge_run_metric.run_id,
    bridge_run_metric.metric_id
from bridge_run_metric
left join dim_run on bridge_run_metric.run_id = dim_run.run_id
left join dim_metric on bridge_run_metric.metric_id = dim_metric.metric_id
where dim_run.run_id is null or dim_metric.metric_id is null
