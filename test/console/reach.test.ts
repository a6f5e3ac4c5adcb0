/** From where the address of a gateway can be reached. */
import { describe, expect, it } from 'vitest'
import { findReach } from '../../src/console/words/reach.ts'

describe('the reach of a gateway', () => {
  it.each([
    ['http://localhost:8787', 'own'],
    ['http://127.0.0.1:8787', 'own'],
    ['http://[::1]:8787', 'own'],
    ['http://bursar.localhost:8787', 'own'],
    ['https://192.168.1.20', 'near'],
    ['https://10.0.0.7:8443', 'near'],
    ['https://172.20.1.1', 'near'],
    ['https://100.64.0.1', 'near'],
    ['https://[fd00::1]', 'near'],
    ['https://bursar', 'near'],
    ['https://bursar.local', 'near'],
    ['https://bursar.internal.', 'near'],
    ['http://bursar.example', 'plain'],
    ['https://172.32.1.1', 'anywhere'],
    ['https://100.128.0.1', 'anywhere'],
    ['https://10.example', 'anywhere'],
    ['https://bursar.example', 'anywhere'],
    ['https://[2001:db8::1]', 'anywhere'],
  ] as const)('the reach of %s is %s', (origin, reach) => {
    expect(findReach(origin)).toBe(reach)
  })
})
