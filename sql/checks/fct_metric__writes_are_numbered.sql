-- The writes of a step are numbered from 1 without a gap.
-- severity: error
-- blocking: false
select
    run_id,
    metric_id,
    step_axis,
    attempt,
    step,
    max(write_no) as last_number,
    count(*) as write_count
from fct_metric
group by run_id, metric_id, step_axis, attempt, step
having min(write_no) <> 1 or max(write_no) <> count(*)
