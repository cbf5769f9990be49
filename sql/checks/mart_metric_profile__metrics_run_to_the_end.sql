-- A metric that is logged at every step is logged to the last one.
-- severity: warn
-- blocking: false
with profiles as (
    select
        *,
        max(last_step) over (partition by run_id, step_axis) as axis_end
    from mart_metric_profile
)

select
    migration,
    run_name,
    metric,
    last_step,
    axis_end
from profiles
where point_count >= 6 and point_count = last_step - first_step + 1 and last_step < axis_end
order by last_step, metric
