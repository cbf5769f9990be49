-- A write of a metric is stored once.
-- severity: error
-- blocking: true
select
    run_id,
    metric_id,
    step_axis,
    attempt,
    step,
    write_no,
    count(*) as row_count
from fct_metric
group by run_id, metric_id, step_axis, attempt, step, write_no
having count(*) > 1
