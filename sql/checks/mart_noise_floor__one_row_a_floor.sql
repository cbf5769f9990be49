-- A metric has one noise floor in a replicate group of a migration.
-- severity: error
-- blocking: true
select
    migration,
    stack,
    metric_id,
    step_axis,
    count(*) as row_count
from mart_noise_floor
group by migration, stack, metric_id, step_axis
having count(*) > 1
