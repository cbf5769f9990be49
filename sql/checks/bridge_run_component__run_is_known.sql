-- Every stated component belongs to a run.
-- severity: error
-- blocking: true
select
    bridge_run_component.run_id,
    count(*) as row_count
from bridge_run_component
left join dim_run on bridge_run_component.run_id = dim_run.run_id
where dim_run.run_id is null
group by bridge_run_component.run_id
