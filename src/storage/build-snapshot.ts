/** Run by the build: puts the snapshot in place, so that not even the first start has to make it. */
import { clusterSnapshot } from './cluster-snapshot.ts'

await clusterSnapshot()
