-- Is the noise floor of a metric the same in every pair of equal runs, and along the run?
-- param metric: the metric = reward/avg_raw_reward
-- values metric: select metric from mart_divergence_onset
-- test: count(*) = 3
-- test: bool_and(late_spread > 0 and relative_to_all between 0.3 and 3)
with deltas as (
    select
        pair_id,
        migration,
        scaled_delta,
        ntile(3) over (
            partition by pair_id
            order by step
        ) as third
    from mart_paired_delta
    where metric = $metric and pair_kind = 'replicate' and is_comparable
),

spreads as (
    select
        pair_id,
        migration,
        count(*) as steps,
        sqrt(avg(scaled_delta * scaled_delta) filter (where third = 1)) as early_spread,
        sqrt(avg(scaled_delta * scaled_delta) filter (where third = 2)) as middle_spread,
        sqrt(avg(scaled_delta * scaled_delta) filter (where third = 3)) as late_spread
    from deltas
    group by pair_id, migration
)

select
    spreads.migration,
    pairs.baseline_run_name as one_run,
    pairs.candidate_run_name as other_run,
    spreads.steps,
    spreads.early_spread,
    spreads.middle_spread,
    spreads.late_spread,
    spreads.late_spread / nullif(avg(spreads.late_spread) over (partition by spreads.migration), 0) as relative_to_all
from spreads
inner join dim_migration as pairs on spreads.pair_id = pairs.pair_id
order by spreads.migration asc, relative_to_all desc
