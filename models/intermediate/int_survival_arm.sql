-- Which arms a pair belongs to: one for each component of the judged run, and one for pairs of equal runs, which
-- every comparison needs beside it.
-- grain: pair_id, component_kind, arm
-- materialized: table
with survival as (
    select distinct
        pair_id,
        pair_kind,
        candidate_run_id
    from int_pair_survival
),

bridges as (
    select
        run_id,
        component_id
    from bridge_run_component
),

components as (
    select
        component_id,
        component_kind,
        component_name,
        component_version
    from dim_component
)

select
    survival.pair_id,  -- the pair
    survival.pair_kind,  -- migration or replicate
    components.component_kind,  -- kind of the component
    component_factor(components.component_kind, components.component_name) as factor,  -- what its versions compete for
    components.component_name,  -- its name
    components.component_version,  -- its version
    trim(components.component_name || ' ' || coalesce(components.component_version, '')) as arm  -- name and version
from survival
inner join bridges on survival.candidate_run_id = bridges.run_id
inner join components on bridges.component_id = components.component_id
where survival.pair_kind = 'migration'
union all by name
select
    survival.pair_id,
    survival.pair_kind,
    'none' as component_kind,
    'none' as factor,
    'equal runs' as component_name,
    null::varchar as component_version,
    'equal runs' as arm
from survival
where survival.pair_kind = 'replicate'
