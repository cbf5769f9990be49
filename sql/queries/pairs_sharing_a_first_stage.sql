-- Which migrated runs share the stage that moved first?
-- test: count(*) = 1 and bool_and(first_stage = 'rollout_or_weight_sync')
-- test: bool_and(candidates = 'sorting-npu/npu_attn_mask_at60')
select
    verdicts.first_stage,
    count(*) as pairs,
    count(distinct pairs.migration) as migrations,
    min(verdicts.first_onset_step) as earliest_onset,
    string_agg(
        pairs.migration || '/' || pairs.candidate_run_name, ', '
        order by verdicts.first_onset_step, pairs.candidate_run_name
    ) as candidates
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
where pairs.pair_kind = 'migration' and verdicts.first_stage is not null
group by verdicts.first_stage
order by pairs desc, earliest_onset asc
