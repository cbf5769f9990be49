-- Which hardware drifts first?
-- test: count(*) = 1 and bool_and(from_version = 'lab-gpu' and to_version = 'lab-npu')
-- test: min(pairs) = 2 and min(drifted_pairs) = 1 and min(earliest_onset) between 59 and 61
-- test: min(longest_run_without_drift) = 150
-- test: min(also_changed) = 'attention_kernel, precision, rollout_engine'
with components as (
    select
        bridge.run_id,
        component.component_name,
        component.component_version
    from bridge_run_component as bridge
    inner join dim_component as component on bridge.component_id = component.component_id
    where component.component_kind = 'hardware'
),

pairs as (
    select
        pairs.pair_id,
        pairs.baseline_run_id,
        pairs.candidate_run_id,
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
),

changed as (
    select
        pairs.pair_id,
        components.component_kind
    from pairs
    inner join bridge_run_component as bridge on bridge.run_id in (pairs.baseline_run_id, pairs.candidate_run_id)
    inner join dim_component as components on bridge.component_id = components.component_id
    where components.component_kind <> 'hardware'
    group by pairs.pair_id, components.component_kind, components.component_id
    having count(*) = 1
),

versions as (
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
),

-- What changed in every one of these pairs can't be told apart from the version.
together as (
    select
        pairs.from_version,
        pairs.to_version,
        changed.component_kind,
        count(distinct pairs.pair_id) as pairs
    from pairs
    inner join changed on pairs.pair_id = changed.pair_id
    group by pairs.from_version, pairs.to_version, changed.component_kind
),

companions as (
    select
        from_version,
        to_version,
        pairs,
        string_agg(component_kind, ', ' order by component_kind) as also_changed
    from together
    group by from_version, to_version, pairs
)

select
    versions.from_version,
    versions.to_version,
    versions.pairs,
    versions.drifted_pairs,
    versions.earliest_onset,
    versions.median_onset_of_drifted,
    versions.longest_run_without_drift,
    companions.also_changed
from versions
left join companions
    on
        versions.from_version = companions.from_version
        and versions.to_version = companions.to_version
        and versions.pairs = companions.pairs
order by
    versions.drifted_pairs * 1.0 / versions.pairs desc,
    versions.earliest_onset asc nulls last,
    versions.from_version asc,
    versions.to_version asc
