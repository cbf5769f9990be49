-- Every step belongs to a run.
-- severity: error
-- blocking: true
select
    dim_step.run_id,
    count(*) as row_count
from dim_step
left join dim_run on dim_step.run_id = dim_run.run_id
where dim_run.run_id is null
group by dim_step.run_id
