-- Which metrics of a pair changed level: the p-values of one pair, controlled for their number, and whether
-- the change is large enough and lasts.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with fits as (
    select * from int_level_fit
),

starts as (
    select
        pair_id,
        metric_id,
        step_axis,
        is_material as is_mismatched
    from int_start_offset
),

metrics as (
    select
        metric_id,
        metric,
        category,
        stage,
        causal_tier,
        scale,
        duplicates_of,
        practical_limit,
        practical_limit_kind
    from dim_metric
),

present as (
    select distinct
        fits.pair_id,
        metrics.metric
    from fits
    inner join metrics on fits.metric_id = metrics.metric_id
),

described as (
    select
        fits.*,
        metrics.metric,
        metrics.category,
        metrics.stage,
        metrics.causal_tier,
        metrics.practical_limit,
        metrics.practical_limit_kind,
        metrics.scale,
        coalesce(starts.is_mismatched, false) as is_mismatched,
        case
            when present.metric is not null then 'duplicate'
            when metrics.causal_tier = 9 then 'time'
            else 'training'
        end as family
    from fits
    inner join metrics on fits.metric_id = metrics.metric_id
    left join starts
        on fits.pair_id = starts.pair_id and fits.metric_id = starts.metric_id and fits.step_axis = starts.step_axis
    left join present on fits.pair_id = present.pair_id and metrics.duplicates_of = present.metric
),

ranked as (
    select
        *,
        row_number() over by_p as rank_in_category,
        count(*) over in_category as size_of_category,
        row_number() over by_p_all as rank_in_family,
        count(*) over in_family as size_of_family
    from described
    window
        by_p as (partition by pair_id, family, category order by p_value, metric_id, step_axis),
        in_category as (partition by pair_id, family, category),
        by_p_all as (partition by pair_id, family order by p_value, metric_id, step_axis),
        in_family as (partition by pair_id, family)
),

-- Benjamini and Hochberg within the category and over the whole family; Benjamini and Yekutieli over the family.
adjusted as (
    select
        *,
        least(1.0, min(p_value * size_of_category / rank_in_category) over (
            partition by pair_id, family, category
            order by p_value desc, metric_id desc, step_axis desc
        )) as q_in_category,
        least(1.0, min(p_value * size_of_family / rank_in_family) over (
            partition by pair_id, family
            order by p_value desc, metric_id desc, step_axis desc
        )) as q_in_family,
        sum(1.0 / rank_in_family) over (partition by pair_id, family) as harmonic
    from ranked
),

categories as (
    select
        pair_id,
        family,
        category,
        min(q_in_category) as simes_p
    from adjusted
    group by pair_id, family, category
),

ranked_categories as (
    select
        *,
        row_number() over (partition by pair_id, family order by simes_p, category) as category_rank,
        count(*) over (partition by pair_id, family) as category_count
    from categories
),

category_q as (
    select
        *,
        least(1.0, min(simes_p * category_count / category_rank) over (
            partition by pair_id, family
            order by simes_p desc, category desc
        )) as q_of_category
    from ranked_categories
),

selected as (
    select
        *,
        count(*) filter (where q_of_category <= drift_q_limit()) over (partition by pair_id, family)
            as chosen_categories
    from category_q
),

judged as (
    select
        adjusted.*,
        selected.q_of_category,
        selected.simes_p,
        least(1.0, greatest(
            selected.q_of_category,
            adjusted.q_in_category * selected.category_count / greatest(selected.chosen_categories, 1)
        )) as q_value,
        least(1.0, adjusted.q_in_family * adjusted.harmonic) as q_value_strict
    from adjusted
    inner join selected
        on
            adjusted.pair_id = selected.pair_id and adjusted.family = selected.family
            and adjusted.category = selected.category
),

measured as (
    select
        *,
        is_across_stacks and candidate_runs = 0 as is_one_sided,
        case
            when practical_limit is null then null
            when practical_limit_kind = 'absolute' then abs(raw_effect) / practical_limit
            when scale = 'log' then abs(mean_after) / ln(1.0 + practical_limit)
            else abs(raw_effect) / nullif(practical_limit * baseline_level, 0.0)
        end as limits
    from judged
),

gated as (
    select
        *,
        case
            when family = 'time' then is_time_shift(median_shift, sigma, inflation, k, n)
            else coalesce(limits, 1.0) >= 1.0
        end as is_material,
        abs(mean_after) >= noise_gate(is_one_sided, coalesce(limits, 0.0) >= 5.0) * gate_sigma as is_above_noise,
        -- Runs that started apart and come closer are not drifting.
        case
            when family = 'time' then true
            when is_mismatched and abs(level_after) <= abs(stack_level) then false
            when not is_across_stacks or candidate_runs > 0 or practical_limit is not null then true
            else abs(mean_after) >= 0.5 * abs(stack_level)
        end as is_above_offset,
        median_next * sign(effect) >= 0.5 * gate_sigma as is_confirmed
    from measured
)

select
    pair_id,  -- the pair
    metric_id,  -- the metric
    metric,  -- its canonical name
    category,  -- its category
    stage,  -- stage that a first drift of it points to
    causal_tier,  -- its place in the chain of causes
    step_axis,  -- which counter the step counts
    family,  -- training, time, or duplicate (in no family)
    p_value,  -- of the two-segment statistic
    simes_p,  -- of its category
    q_of_category,  -- of its category, after control over categories
    q_in_category,  -- within its category
    q_in_family,  -- over the whole family at once
    q_value,  -- by category and within it
    q_value_strict,  -- over the whole family, whatever the dependence between metrics
    is_material,  -- reaches the practical limit of the catalogue, where it has one; 25% for time
    is_above_noise,  -- the mean after the change is beyond the noise gate
    is_above_offset,  -- leads away from a mismatch of the start, and is more than half of an offset between stacks
    -- that no replicate explains
    is_confirmed,  -- the median of the next eight steps has moved by half a sigma
    family <> 'duplicate' and q_value <= drift_q_limit() and is_material and is_above_noise
    and is_above_offset and is_confirmed as is_drift  -- all of that
from gated
