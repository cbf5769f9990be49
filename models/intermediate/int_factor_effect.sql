-- How far onsets differ between the versions of a component, whatever else the pairs ran on. A component that tells
-- something is held fixed where the versions of others are compared.
-- grain: factor, metric_group, onset_kind
-- materialized: table
with survival as (
    select
        pair_id,
        recipe,
        metric_group,
        onset_kind,
        duration,
        is_event
    from int_pair_survival
    where pair_kind = 'migration'
),

arms as (
    select
        pair_id,
        factor,
        arm
    from int_survival_arm
    where component_kind <> 'none'
),

at_risk as (
    select
        *,
        count(*) over (
            partition by metric_group, onset_kind, recipe
            order by duration desc
            range unbounded preceding
        ) as at_risk
    from survival
),

-- Onset less what the recipe had to expect.
scored as (
    select
        pair_id,
        metric_group,
        onset_kind,
        is_event::integer - sum(is_event::integer / at_risk) over (
            partition by metric_group, onset_kind, recipe
            order by duration
            range unbounded preceding
        ) as score
    from at_risk
),

spread as (
    select
        metric_group,
        onset_kind,
        avg(score) as mean_score,
        var_samp(score) as variance
    from scored
    group by metric_group, onset_kind
),

factors as (
    select distinct factor from arms
),

pairs as (
    select distinct pair_id from survival
),

-- A pair without the component is a version of its own.
versions as (
    select
        factors.factor,
        pairs.pair_id,
        coalesce(string_agg(arms.arm, '|' order by arms.arm), '') as version
    from factors
    cross join pairs
    left join arms on factors.factor = arms.factor and pairs.pair_id = arms.pair_id
    group by factors.factor, pairs.pair_id
),

means as (
    select
        versions.factor,
        versions.version,
        scored.metric_group,
        scored.onset_kind,
        count(*) as pairs,
        avg(scored.score) as mean_score
    from versions
    inner join scored on versions.pair_id = scored.pair_id
    group by versions.factor, versions.version, scored.metric_group, scored.onset_kind
),

tested as (
    select
        means.factor,
        means.metric_group,
        means.onset_kind,
        count(*) - 1 as degrees,
        sum(means.pairs * pow(means.mean_score - spread.mean_score, 2)) / nullif(any_value(spread.variance), 0.0)
            as chi_square
    from means
    inner join spread on means.metric_group = spread.metric_group and means.onset_kind = spread.onset_kind
    group by means.factor, means.metric_group, means.onset_kind
)

select
    factor,  -- the component: its kind, and for libraries and switches its name
    metric_group,  -- a category, or all metrics of training
    onset_kind,  -- drift or decouple
    degrees,  -- versions less one
    chi_square,  -- squares between the versions, in the variance of the scores
    coalesce(degrees > 0 and chi_square > telling_chi_square(degrees), false) as is_held_fixed  -- it tells something
from tested
