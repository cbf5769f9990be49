-- Exactly one write of a metric and step is current.
-- severity: error
-- blocking: true
select
    run_id,
    metric_id,
    step_axis,
    step,
    count(*) filter (where is_current) as current_count
from fct_metric
group by run_id, metric_id, step_axis, step
having count(*) filter (where is_current) <> 1
