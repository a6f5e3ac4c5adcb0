import { describeInterleavings } from './interleavings.ts'

describeInterleavings('PostgreSQL')
