-- Did the runs of each pair see the same data: are the metrics equal that must be?
-- test: count(*) = 30
-- test: bool_and(first_unequal_step is null and equal_through = 150)
-- planted: count(*) filter (where first_unequal_step = 5) = 1
select
    pairs.migration,
    pairs.baseline_run_name as baseline,
    pairs.candidate_run_name as candidate,
    onsets.metric,
    case when not onsets.is_censored then onsets.onset_step end as first_unequal_step,
    case when onsets.is_censored then onsets.censored_at end as equal_through
from mart_divergence_onset as onsets
inner join dim_metric as metrics on onsets.metric = metrics.metric
inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
where onsets.onset_kind = 'first_diff' and metrics.parity_class = 'exact' and metrics.stage = 'data'
order by first_unequal_step nulls last, pairs.migration, candidate, baseline, onsets.metric
