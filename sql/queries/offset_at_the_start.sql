-- How far are the two stacks apart at the first steps, before anything can have drifted?
-- param steps: number of steps = 10
-- test: count(*) >= 20
-- test: min(candidate_to_baseline) filter (where metric = 'mismatch/mismatch_logprob_abs_diff') between 3 and 6
-- test: max(candidate_to_baseline) filter (where metric = 'mismatch/mismatch_logprob_abs_diff') between 3 and 6
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    deltas.metric,
    avg(deltas.baseline_value) as baseline_mean,
    avg(deltas.candidate_value) as candidate_mean,
    avg(deltas.candidate_value) / nullif(avg(deltas.baseline_value), 0) as candidate_to_baseline,
    avg(deltas.standardised_delta) as in_sigma
from mart_paired_delta as deltas
inner join dim_migration as pairs on deltas.pair_id = pairs.pair_id
inner join dim_metric as metrics on deltas.metric_id = metrics.metric_id
where
    pairs.pair_kind = 'migration'
    and deltas.delta is not null
    and metrics.causal_tier < 9
    and deltas.step < (select min(first_step) + $steps::bigint from dim_run)
group by pairs.migration, candidate, deltas.metric
having avg(deltas.baseline_value) <> avg(deltas.candidate_value)
order by pairs.migration asc, candidate asc, abs(in_sigma) desc nulls last
