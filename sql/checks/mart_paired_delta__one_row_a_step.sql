-- A pair has one difference for each metric and step.
-- severity: error
-- blocking: true
select
    pair_id,
    metric_id,
    step_axis,
    step,
    count(*) as row_count
from mart_paired_delta
group by pair_id, metric_id, step_axis, step
having count(*) > 1
