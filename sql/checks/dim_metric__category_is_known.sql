-- Every metric belongs to a category.
-- severity: error
-- blocking: true
select
    dim_metric.category,
    count(*) as row_count
from dim_metric
left join dim_category on dim_metric.category = dim_category.category
where dim_category.category is null
group by dim_metric.category
