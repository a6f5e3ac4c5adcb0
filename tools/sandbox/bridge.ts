import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { bridgeModes } from '../../src/providers/attester/port.ts'

export default defineTool({
  name: 'sandbox.bridge',
  title: 'Behaviour of the bridge',
  summary: 'Set how the attester of USDC between the local chains behaves.',
  description:
    'It holds until it is set again, also for burns that wait. `lost`: nothing is attested, and swaps stay `bridging`. The last three lie: their messages are refused.',
  route: 'POST /sandbox/bridge',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    mode: z.enum(bridgeModes).describe('`normal`; `late`: attests after 5 seconds; `lost`: never; or a lie.'),
  }),
  output: z.strictObject({ mode: z.enum(bridgeModes).describe('Mode that was set.') }),
  failures: ['not_found'],
  example: { mode: 'normal' },
  run: async ({ attester, now }, { mode }) => {
    if (attester?.setMode === undefined)
      throw new Failure('not_found', 'Burns of this deployment are attested by Circle.')
    await attester.setMode(mode, now)
    return { mode }
  },
})
