-- Which hardware, kernel or any other component version drifts first, across all migrations?
-- Only what was compared inside one recipe, with every other component that tells something held fixed, is called
-- earlier; what always changes together is called confounded, and equal runs stand beside it.
-- param kind: kind of onset, drift or decouple = drift
-- values kind: select unnest(['drift', 'decouple'])
-- test: count(*) = 0
select
    component_kind,
    arm as component,
    finding,
    array_to_string(confounded_with, ', ') as always_changes_with,
    array_to_string(held_fixed, ', ') as held_fixed,
    hazard_ratio,
    hazard_ratio_low,
    hazard_ratio_high,
    p_adjusted,
    pairs,
    events,
    other_pairs,
    other_events,
    median_duration,
    restricted_mean,
    equal_runs_median,
    equal_runs_pairs
from mart_component_contrast
where metric_group = 'all' and onset_kind = $kind
order by
    case finding when 'earlier' then 1 when 'confounded' then 2 when 'no_difference' then 3 else 4 end asc,
    p_adjusted asc nulls last,
    component_kind asc,
    arm asc
