-- A component that the judged run of a pair ran on, with the onset of the pair's drift. Pairs without drift count too.
-- grain: pair_id, component_kind, component
-- materialized: view
select
    pairs.pair_id, -- the pair
    pairs.migration, -- its migration
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    pairs.pair_kind, -- migration (two stacks) or replicate (one stack, nothing should differ)
    component.component_kind, -- hardware, driver, compute_stack, framework, rollout_engine, attention_kernel, ...
    component.component_name || coalesce(' ' || component.component_version, '') as component, -- name and version
    verdicts.verdict, -- drift, decoupled_only, ...; see the data dictionary
    verdicts.first_onset_step as onset_step, -- step from which on the first metric is off; null without drift
    verdicts.last_common_step -- last step that both runs logged
from dim_migration as pairs
inner join mart_pair_verdict as verdicts on pairs.pair_id = verdicts.pair_id
inner join bridge_run_component as bridge on pairs.candidate_run_id = bridge.run_id
inner join dim_component as component on bridge.component_id = component.component_id
