-- Lists the objects of the schema tailrace, one on each line. NOT NULL is shown with the column. Since Postgres
-- 18 it is a constraint too, which is left out.
SELECT line FROM (
  SELECT 1 AS part, c.relname::text AS of, a.attnum::int AS place,
         format('%s %s.%s %s%s%s',
                CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, c.relname, a.attname,
                format_type(a.atttypid, a.atttypmod),
                CASE WHEN a.attnotnull THEN ' not null' ELSE '' END,
                ' default ' || pg_get_expr(d.adbin, d.adrelid)) AS line
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
   WHERE c.relnamespace = 'tailrace'::regnamespace AND c.relkind IN ('r', 'v')
  UNION ALL
  SELECT 2, r.relname::text, 0,
         format('constraint %s.%s %s', r.relname, k.conname, pg_get_constraintdef(k.oid))
    FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid
   WHERE k.connamespace = 'tailrace'::regnamespace AND k.contype <> 'n'
  UNION ALL
  SELECT 3, i.indexrelid::regclass::text, 0, pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
   WHERE c.relnamespace = 'tailrace'::regnamespace
  UNION ALL
  SELECT 4, s.sequencename::text, 0,
         format('sequence %s %s start %s increment %s', s.sequencename, s.data_type, s.start_value,
                s.increment_by)
    FROM pg_sequences s WHERE s.schemaname = 'tailrace'
  UNION ALL
  SELECT 5, p.proname::text, 0,
         format('function %s(%s) returns %s %s%s%s%s parallel %s%s', p.proname,
                pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname,
                CASE p.provolatile WHEN 'i' THEN ' immutable' WHEN 's' THEN ' stable' ELSE ' volatile' END,
                CASE WHEN p.proisstrict THEN ' strict' ELSE '' END,
                CASE WHEN p.prosecdef THEN ' security definer' ELSE '' END, p.proparallel,
                ' set ' || array_to_string(p.proconfig, ', '))
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
   WHERE p.pronamespace = 'tailrace'::regnamespace
  UNION ALL
  -- Whoever owns it may all; nobody else has any right that an operator did not give.
  SELECT 6, n.nspname::text, 0, format('grants on schema %s: %s', n.nspname, coalesce(n.nspacl::text, 'none'))
    FROM pg_namespace n WHERE n.nspname = 'tailrace'
  UNION ALL
  SELECT 6, c.relname::text, 0, format('grants on %s: %s', c.relname, c.relacl)
    FROM pg_class c WHERE c.relnamespace = 'tailrace'::regnamespace AND c.relacl IS NOT NULL
  UNION ALL
  SELECT 6, c.relname::text, a.attnum, format('grants on %s.%s: %s', c.relname, a.attname, a.attacl)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
   WHERE c.relnamespace = 'tailrace'::regnamespace AND a.attacl IS NOT NULL
  UNION ALL
  SELECT 6, p.proname::text, 0, format('grants on %s: %s', p.proname, p.proacl)
    FROM pg_proc p WHERE p.pronamespace = 'tailrace'::regnamespace AND p.proacl IS NOT NULL
  UNION ALL
  SELECT 7, d.defaclobjtype::text, 0, format('default grants on %s: %s', d.defaclobjtype, d.defaclacl)
    FROM pg_default_acl d WHERE d.defaclnamespace = 'tailrace'::regnamespace
  UNION ALL
  SELECT 8, t.typname::text, 0, format('type %s', t.typname)
    FROM pg_type t
   WHERE t.typnamespace = 'tailrace'::regnamespace AND t.typrelid = 0 AND t.typelem = 0
) AS o
ORDER BY part, of COLLATE "C", place, line COLLATE "C"
