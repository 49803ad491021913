-- Makes files from the table `staged` (table_id, spec_id, age in days, no, ended, text instead of the
-- day's, kind), as commits would have written them: one commit a day, the oldest day first.
ALTER TABLE hog_data_file SET (autovacuum_enabled = off);
ALTER TABLE hog_file_partition_value SET (autovacuum_enabled = off);
ALTER TABLE hog_delete_file SET (autovacuum_enabled = off);
ALTER TABLE hog_snapshot SET (autovacuum_enabled = off);
ALTER TABLE hog_snapshot_change SET (autovacuum_enabled = off);

CREATE TEMP TABLE arranged AS
SELECT s.*, c.next_file_id - 1 + row_number() OVER (ORDER BY age DESC, table_id, no) AS id,
       c.last_snapshot_id + dense_rank() OVER (ORDER BY age DESC) AS begun,
       100 * (row_number() OVER (PARTITION BY table_id ORDER BY age DESC, no) - 1) AS row_id_start
  FROM staged s, hog_catalog c WHERE c.catalog_id = :catalog;

INSERT INTO hog_snapshot (catalog_id, snapshot_id, schema_version)
SELECT :catalog, snapshot_id, schema_version FROM hog_catalog,
       generate_series(last_snapshot_id + 1, (SELECT max(begun) + 1 FROM arranged)) AS snapshot_id
 WHERE catalog_id = :catalog;

INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
SELECT DISTINCT :catalog, begun, 'table_inserted_into', table_id FROM arranged
UNION ALL
SELECT DISTINCT :catalog, (SELECT max(begun) + 1 FROM arranged), 'table_deleted_from', table_id
  FROM arranged WHERE ended;

INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, end_snapshot, path,
                           record_count, file_size_bytes, row_id_start, spec_id)
SELECT :catalog, id, table_id, begun,
       CASE WHEN ended THEN (SELECT max(begun) + 1 FROM arranged) END,
       's3://lake/' || table_id || '/' || md5(id::text), 100, 1000, row_id_start, spec_id
  FROM arranged ORDER BY id;

INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
SELECT :catalog, id, 0, coalesce(text, (extract(epoch FROM now())::bigint / 86400 - age)::text)
  FROM arranged
UNION ALL
SELECT :catalog, id, 1, kind FROM arranged WHERE kind IS NOT NULL
 ORDER BY 2, 3;

INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id, begin_snapshot,
                             end_snapshot, path, delete_count, file_size_bytes)
SELECT :catalog, (SELECT max(id) FROM arranged) + row_number() OVER (ORDER BY id), table_id, id, begun,
       CASE WHEN no % 10 = 1 THEN (SELECT max(begun) + 1 FROM arranged) END,
       's3://lake/' || table_id || '/' || md5(id::text) || '.puffin', 1, 10
  FROM arranged WHERE no % 10 < 2 AND NOT ended ORDER BY id;

UPDATE hog_catalog SET last_snapshot_id = (SELECT max(begun) + 1 FROM arranged),
       next_file_id = (SELECT max(delete_file_id) + 1 FROM hog_delete_file)
 WHERE catalog_id = :catalog;
UPDATE hog_table_stats s
   SET next_row_id = t.rows, record_count = t.rows, file_size_bytes = 10 * t.rows
  FROM (SELECT table_id, max(row_id_start) + 100 AS rows FROM arranged GROUP BY table_id) AS t
 WHERE s.catalog_id = :catalog AND s.table_id = t.table_id;
DROP TABLE staged, arranged;
