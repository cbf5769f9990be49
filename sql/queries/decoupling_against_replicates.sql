-- Do migrated runs lose step-by-step equality earlier than equal runs do?
-- test: count(*) = 2
-- test: bool_and(decoupled_at > 20 and replicates_decoupled_at > 20)
with replicates as (
    select
        migration,
        median(decoupled_at) as decoupled_at,
        count(*) as pairs
    from mart_pair_verdict
    where pair_kind = 'replicate'
    group by migration
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    verdicts.first_different_step,
    verdicts.first_different_metric,
    verdicts.decoupled_at,
    replicates.decoupled_at as replicates_decoupled_at,
    coalesce(replicates.pairs, 0) as replicate_pairs
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
left join replicates on verdicts.migration = replicates.migration
where verdicts.pair_kind = 'migration'
order by pairs.migration, verdicts.decoupled_at nulls last, candidate
