/** Build step: creates the cluster snapshot, so that the first start is fast. */
import { clusterSnapshot } from './cluster-snapshot.ts'

await clusterSnapshot()
