-- In how many steps do the differences of a pair double until they saturate?
-- test: count(*) >= 4
-- test: bool_and(median_doubling_steps between 0.5 and 20)
select
    pairs.migration,
    pairs.pair_kind,
    pairs.baseline_run_name as baseline,
    pairs.candidate_run_name as candidate,
    count(*) as metrics_that_grew,
    median(onsets.doubling_steps) as median_doubling_steps,
    median(onsets.onset_step) as median_plateau_step
from mart_divergence_onset as onsets
inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
where onsets.onset_kind = 'decouple' and onsets.shape = 'rise' and not onsets.is_censored
group by pairs.migration, pairs.pair_kind, baseline, candidate
order by median_doubling_steps
