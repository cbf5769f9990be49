-- A spoiled point is named once for each cause.
-- severity: error
-- blocking: true
select
    run_id,
    metric_id,
    step_axis,
    step,
    cause,
    count(*) as row_count
from int_contaminated_step
group by run_id, metric_id, step_axis, step, cause
having count(*) > 1
