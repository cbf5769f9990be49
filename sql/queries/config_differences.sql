-- In which settings do the runs of each pair differ besides the stack?
-- test: count(*) = 0
-- planted: count(*) = 2 and bool_and(setting = 'seed' and candidate_has = '1')
with settings as (
    unpivot (
        select
            run_id,
            coalesce(framework, '') as framework,
            coalesce(recipe, '') as recipe,
            coalesce(seed, '') as seed,
            coalesce(data_order_key, '') as data_order_key,
            coalesce(config_hash, '') as config_hash,
            coalesce(log_format, '') as log_format,
            coalesce(log_precision, '') as log_precision
        from dim_run
    ) on framework, recipe, seed, data_order_key, config_hash, log_format, log_precision
    into name setting value written
)

select
    pairs.migration,
    pairs.baseline_run_name as baseline,
    pairs.candidate_run_name as candidate,
    before.setting,
    before.written as baseline_has,
    after.written as candidate_has
from dim_migration as pairs
inner join settings as before on pairs.baseline_run_id = before.run_id
inner join settings as after on pairs.candidate_run_id = after.run_id and before.setting = after.setting
where pairs.pair_kind = 'migration' and before.written <> after.written
order by pairs.migration, candidate, before.setting
