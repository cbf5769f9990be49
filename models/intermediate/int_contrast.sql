-- Which component versions can be compared with the other versions of their kind, and which other components always
-- change together with them.
-- grain: component_kind, arm
-- materialized: table
with arms as (
    select
        pair_id,
        component_kind,
        factor,
        arm
    from int_survival_arm
    where component_kind <> 'none'
),

versions as (
    select
        factor,
        count(distinct arm) as version_count
    from arms
    group by factor
),

contrasts as (
    select distinct
        arms.component_kind,
        arms.factor,
        arms.arm
    from arms
    inner join versions on arms.factor = versions.factor
    where versions.version_count >= 2
),

-- Each pair on either side of a contrast, with its version of every other component.
sides as (
    select
        contrasts.factor,
        contrasts.arm,
        arms.pair_id,
        bool_or(arms.arm = contrasts.arm) as is_in_arm
    from contrasts
    inner join arms on contrasts.factor = arms.factor
    group by contrasts.factor, contrasts.arm, arms.pair_id
),

others as (
    select
        sides.factor,
        sides.arm,
        arms.factor as other_factor,
        arms.arm as other_arm,
        bool_or(sides.is_in_arm) as is_within,
        bool_or(not sides.is_in_arm) as is_outside
    from sides
    inner join arms on sides.pair_id = arms.pair_id and sides.factor <> arms.factor
    group by sides.factor, sides.arm, arms.factor, arms.arm
),

factors as (
    select
        factor,
        arm,
        other_factor,
        bool_or(is_within) and bool_or(is_outside) and not bool_or(is_within and is_outside) as is_confounded
    from others
    group by factor, arm, other_factor
),

named as (
    select
        factor,
        arm,
        list(other_factor order by other_factor) as confounded_with
    from factors
    where is_confounded
    group by factor, arm
)

select
    contrasts.component_kind,  -- kind of the component
    contrasts.factor,  -- what its versions compete for: the kind, and for libraries and switches the name
    contrasts.arm,  -- the version that is compared with all others
    coalesce(named.confounded_with, []) as confounded_with  -- components of which no version occurs on both sides
from contrasts
left join named on contrasts.factor = named.factor and contrasts.arm = named.arm
