-- When did each category first differ, decouple and drift?
-- param candidate: name of the candidate run = npu_attn_mask_at60
-- values candidate: select candidate_run_name from dim_migration where pair_kind = 'migration'
-- test: count(*) = 10
-- test: min(drift) filter (where category in ('mismatch', 'importance_sampling')) between 59 and 61
-- test: count(drift) filter (where category in ('reward', 'time')) = 0
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    onsets.category,
    categories.causal_tier,
    count(distinct onsets.metric) as metrics,
    min(onsets.onset_step) filter (where onsets.onset_kind = 'first_diff') as first_diff,
    min(onsets.onset_step) filter (where onsets.onset_kind = 'decouple' and not onsets.is_censored) as decouple,
    min(onsets.onset_step) filter (where onsets.onset_kind = 'drift' and not onsets.is_censored) as drift,
    count(distinct onsets.metric) filter (
        where onsets.onset_kind = 'drift' and not onsets.is_censored
    ) as drifted_metrics
from mart_divergence_onset as onsets
inner join dim_migration as pairs on onsets.pair_id = pairs.pair_id
inner join dim_category as categories on onsets.category = categories.category
where pairs.candidate_run_name = $candidate and pairs.pair_kind = 'migration'
group by pairs.migration, pairs.candidate_run_name, onsets.category, categories.causal_tier
order by pairs.migration, drift nulls last, decouple nulls last, categories.causal_tier
