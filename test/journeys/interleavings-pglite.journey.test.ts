import { describeInterleavings } from './interleavings.ts'

describeInterleavings('PGlite')
