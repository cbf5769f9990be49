-- Every step at which a point was logged has a row.
-- severity: error
-- blocking: true
select
    points.run_id,
    points.step_axis,
    points.attempt,
    points.step,
    count(*) as point_count
from fct_metric as points
left join dim_step as steps
    on
        points.run_id = steps.run_id
        and points.step_axis = steps.step_axis
        and points.attempt = steps.attempt
        and points.step = steps.step
where steps.run_id is null
group by points.run_id, points.step_axis, points.attempt, points.step
