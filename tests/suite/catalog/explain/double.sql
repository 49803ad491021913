-- Doubles every live file, with its values and its vector, in one more commit. Partition values that are
-- no days become different ones.
CREATE TEMP TABLE twins AS
SELECT f.*, c.next_file_id AS more, c.last_snapshot_id + 1 AS snapshot_id, s.next_row_id
  FROM hog_data_file f JOIN hog_catalog c USING (catalog_id)
  JOIN hog_table_stats s USING (catalog_id, table_id)
 WHERE end_snapshot IS NULL;

INSERT INTO hog_snapshot (catalog_id, snapshot_id, schema_version)
SELECT catalog_id, last_snapshot_id + 1, schema_version FROM hog_catalog;
INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
SELECT DISTINCT catalog_id, snapshot_id, 'table_inserted_into', table_id FROM twins;
INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path, record_count,
                           file_size_bytes, row_id_start, spec_id)
SELECT catalog_id, data_file_id + more, table_id, snapshot_id, path || ' twin', record_count,
       file_size_bytes, row_id_start + next_row_id, spec_id
  FROM twins;
INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
SELECT v.catalog_id, v.data_file_id + more, key_index,
       CASE WHEN length(value) = 32 THEN value || ' twin' ELSE value END
  FROM hog_file_partition_value v JOIN twins USING (catalog_id, data_file_id);
INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id, begin_snapshot,
                             path, delete_count, file_size_bytes)
SELECT d.catalog_id, d.delete_file_id + more, d.table_id, d.data_file_id + more, snapshot_id,
       d.path || ' twin', d.delete_count, d.file_size_bytes
  FROM hog_delete_file d JOIN twins USING (catalog_id, data_file_id)
 WHERE d.end_snapshot IS NULL;

UPDATE hog_catalog SET last_snapshot_id = last_snapshot_id + 1, next_file_id = 2 * next_file_id;
UPDATE hog_table_stats SET next_row_id = 2 * next_row_id;
DROP TABLE twins;
