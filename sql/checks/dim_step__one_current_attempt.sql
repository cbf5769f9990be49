-- A step is current in one attempt at most.
-- severity: error
-- blocking: true
select
    run_id,
    step_axis,
    step,
    count(*) filter (where is_current) as current_count
from dim_step
group by run_id, step_axis, step
having count(*) filter (where is_current) > 1
