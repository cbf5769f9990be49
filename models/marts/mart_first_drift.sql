-- Which metric of a pair drifted first: every drifted metric with its probability of being first. Metrics of
-- time never compete.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with drifted as (
    select
        pair_id,
        metric_id,
        metric,
        category,
        stage,
        causal_tier,
        step_axis,
        q_value
    from int_drift_test
    where is_drift and family = 'training'
),

fits as (
    select
        pair_id,
        metric_id,
        step_axis,
        onset_step,
        onset_step_low,
        onset_step_high,
        statistic,
        profile
    from int_onset
),

pairs as (
    select
        pair_id,
        migration
    from dim_migration
),

found as (
    select
        drifted.*,
        fits.onset_step,
        fits.onset_step_low,
        fits.onset_step_high,
        fits.statistic,
        fits.profile
    from drifted
    inner join fits
        on
            drifted.pair_id = fits.pair_id and drifted.metric_id = fits.metric_id
            and drifted.step_axis = fits.step_axis
),

likelihoods as (
    select
        pair_id,
        metric_id,
        step_axis,
        unnest(profile).step as step,
        exp(-unnest(profile).lr / 2.0) as likelihood
    from found
),

own_weights as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        likelihood / sum(likelihood) over (partition by pair_id, metric_id, step_axis) as own_weight
    from likelihoods
),

-- One fault moves many metrics at once, so steps at which others moved are likelier: without that, the metric that
-- is least certain would always be the probable first.
pulled as (
    select
        *,
        own_weight * sum(own_weight) over (partition by pair_id, step) as weight_with_others
    from own_weights
),

weights as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        weight_with_others / sum(weight_with_others) over (partition by pair_id, metric_id, step_axis) as weight
    from pulled
),

grid as (
    select distinct
        pair_id,
        step
    from weights
),

-- Chance that the onset of each metric lies after each step of the grid.
later as (
    select
        found.pair_id,
        found.metric_id,
        found.step_axis,
        grid.step,
        coalesce(weights.weight, 0.0) as weight,
        1.0 - sum(coalesce(weights.weight, 0.0)) over (
            partition by found.pair_id, found.metric_id, found.step_axis
            order by grid.step
            rows unbounded preceding
        ) as survival
    from found
    inner join grid on found.pair_id = grid.pair_id
    left join weights
        on
            found.pair_id = weights.pair_id and found.metric_id = weights.metric_id
            and found.step_axis = weights.step_axis and grid.step = weights.step
),

-- Metrics that moved in one step have equal chances of having been first in it: the moment inside the step is
-- taken as uniform, and the integral over it as a sum of 16 points.
moments as (
    select (unnest(range(16)) + 0.5) / 16.0 as moment
),

products as (
    select
        later.pair_id,
        later.metric_id,
        later.step_axis,
        later.weight,
        sum(ln(greatest(later.survival + (1.0 - moments.moment) * later.weight, 1e-12))) over (
            partition by later.pair_id, later.step, moments.moment
        ) - ln(greatest(later.survival + (1.0 - moments.moment) * later.weight, 1e-12)) as log_others
    from later
    cross join moments
),

raw_chance as (
    select
        pair_id,
        metric_id,
        step_axis,
        sum(weight * exp(log_others)) as chance
    from products
    group by pair_id, metric_id, step_axis
),

chances as (
    select
        pair_id,
        metric_id,
        step_axis,
        chance / sum(chance) over (partition by pair_id) as probability_first
    from raw_chance
),

tied as (
    select
        found.*,
        chances.probability_first,
        found.onset_step_low <= min(found.onset_step_high) over (partition by found.pair_id) as is_tied
    from found
    inner join chances
        on
            found.pair_id = chances.pair_id and found.metric_id = chances.metric_id
            and found.step_axis = chances.step_axis
),

strongest as (
    select
        *,
        is_tied
        and statistic >= 0.25 * max(statistic) over (partition by pair_id, is_tied) as is_contender
    from tied
),

-- A noisy metric may have moved at any time, which makes it probably first and useless: among tied metrics those
-- that moved clearly come first, the nearest to the cause before others, then what had surely moved the earliest. A
-- disagreement between rollout and training precedes the gradients that it changes, since a fault of training alone
-- can't cause it in that step. What differs in the last bits alone is equal, lest the order change from build to build.
ranked as (
    select
        *,
        row_number() over (
            partition by pair_id
            order by
                is_contender desc,
                is_tied desc,
                case when is_contender and causal_tier in (2, 3) then 0.5 when is_contender then causal_tier end asc,
                case when is_contender then onset_step_high end asc,
                case when is_contender then -round(statistic, 6) end asc,
                round(probability_first, 9) desc,
                q_value asc,
                metric asc,
                step_axis asc
        ) as rank
    from strongest
)

select
    ranked.pair_id,  -- the pair
    pairs.migration,  -- its migration
    ranked.rank,  -- 1 for the first
    ranked.metric_id,  -- the metric
    ranked.metric,  -- its canonical name
    ranked.category,  -- its category
    ranked.stage,  -- stage that it points to
    ranked.causal_tier,  -- its place in the chain of causes
    ranked.step_axis,  -- which counter the step counts
    ranked.onset_step,  -- step from which its level is off
    ranked.onset_step_low,  -- lower end of its interval
    ranked.onset_step_high,  -- upper end of its interval
    ranked.q_value,  -- false discovery rate at which it is named
    ranked.probability_first,  -- chance that no other drifted metric moved before it
    ranked.is_tied and count(*) filter (where ranked.is_tied) over (partition by ranked.pair_id) > 1
        as is_tied  -- its interval and that of the earliest overlap; never so of a metric that drifted alone
from ranked
inner join pairs on ranked.pair_id = pairs.pair_id
