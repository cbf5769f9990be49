-- A step of an attempt has one row.
-- severity: error
-- blocking: true
select
    run_id,
    step_axis,
    attempt,
    step,
    count(*) as row_count
from dim_step
group by run_id, step_axis, attempt, step
having count(*) > 1
