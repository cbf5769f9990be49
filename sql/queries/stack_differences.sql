-- Which components differ between the runs of each pair?
-- test: count(*) = 8
-- test: count(*) filter (where baseline_has = 'lab-gpu' and candidate_has = 'lab-npu') = 2
with components as (
    select
        bridge.run_id,
        component.component_kind,
        string_agg(
            concat_ws(' ', component.component_name, component.component_version), ', '
            order by component.component_name
        ) as has
    from bridge_run_component as bridge
    inner join dim_component as component on bridge.component_id = component.component_id
    group by bridge.run_id, component.component_kind
),

kinds as (
    select distinct component_kind from dim_component
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    kinds.component_kind,
    before.has as baseline_has,
    after.has as candidate_has
from dim_migration as pairs
cross join kinds
left join components as before
    on pairs.baseline_run_id = before.run_id and kinds.component_kind = before.component_kind
left join components as after
    on pairs.candidate_run_id = after.run_id and kinds.component_kind = after.component_kind
where pairs.pair_kind = 'migration' and before.has is distinct from after.has
order by pairs.migration, candidate, kinds.component_kind
