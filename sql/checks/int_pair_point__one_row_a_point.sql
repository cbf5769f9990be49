-- A pair has one row for each metric and step.
-- severity: error
-- blocking: true
select
    pair_id,
    metric_id,
    step_axis,
    step,
    count(*) as row_count
from int_pair_point
group by pair_id, metric_id, step_axis, step
having count(*) > 1
