-- Which version of a kernel, engine or driver drifts first?
-- param kind: kind of component, see dim_component = attention_kernel
-- values kind: select component_kind from dim_component
-- test: count(*) = 1 and bool_and(from_version = 'dense 1.0' and to_version = 'dense 1.1')
-- test: min(earliest_onset) between 59 and 61
with components as (
    select
        bridge.run_id,
        component.component_name,
        component.component_version
    from bridge_run_component as bridge
    inner join dim_component as component on bridge.component_id = component.component_id
    where component.component_kind = $kind
),

pairs as (
    select
        pairs.pair_id,
        concat_ws(' ', before.component_name, before.component_version) as from_version,
        concat_ws(' ', after.component_name, after.component_version) as to_version,
        verdicts.first_onset_step,
        verdicts.last_common_step,
        verdicts.verdict
    from dim_migration as pairs
    inner join mart_pair_verdict as verdicts on pairs.pair_id = verdicts.pair_id
    inner join components as before on pairs.baseline_run_id = before.run_id
    inner join components as after on pairs.candidate_run_id = after.run_id
    where pairs.pair_kind = 'migration' and verdicts.verdict <> 'insufficient'
)

select
    from_version,
    to_version,
    count(*) as pairs,
    count(first_onset_step) as drifted_pairs,
    min(first_onset_step) as earliest_onset,
    median(first_onset_step) as median_onset_of_drifted,
    max(last_common_step) filter (where first_onset_step is null) as longest_run_without_drift
from pairs
group by from_version, to_version
order by count(first_onset_step) * 1.0 / count(*) desc, earliest_onset asc nulls last, from_version asc, to_version asc
