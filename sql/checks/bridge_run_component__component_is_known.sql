-- Every stated component is described.
-- severity: error
-- blocking: true
select
    bridge_run_component.component_id,
    count(*) as row_count
from bridge_run_component
left join dim_component on bridge_run_component.component_id = dim_component.component_id
where dim_component.component_id is null
group by bridge_run_component.component_id
