import { isAddress } from 'viem'
import { z } from 'zod'
import { type Directions, looserMembers } from '../../../policies/directions.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  changeBlockedAddresses,
  MAX_BLOCKED_ADDRESSES,
  readBlockedAddresses,
} from '../../../src/people/compliance/blocked-addresses.ts'

const list = z.strictObject({
  addresses: z
    .array(
      z
        .string()
        .max(42)
        .refine((text): boolean => isAddress(text), { error: 'must be an EVM address' })
        .toLowerCase(),
    )
    .max(MAX_BLOCKED_ADDRESSES)
    .transform((addresses) => [...new Set(addresses)].sort())
    .describe(`EVM addresses, at most ${MAX_BLOCKED_ADDRESSES}; [] blocks none.`),
})

const directions: Directions<z.output<typeof list>> = { addresses: 'narrower' }

export default defineTool({
  name: 'compliance.blocked_addresses.set',
  title: 'Set the blocked addresses',
  summary: 'Set the addresses that are blocked for all transfers of the account, by any key or person.',
  description:
    'The new list replaces the previous one. An added address is blocked from the next transfer on (403 `aml_blocked`, list `owner`). Removing an address needs a fresh second factor.',
  route: 'PUT /api/compliance/blocked-addresses',
  who: 'person',
  effect: 'write',
  proof: 'loosening',
  stops: true,
  input: list,
  loosens: directions,
  output: z.strictObject({
    addresses: z.array(z.string()).describe('All blocked EVM addresses, in lower case, sorted.'),
  }),
  failures: ['step_up_required', 'mfa_enrollment_required'],
  example: { addresses: ['0x000000000000000000000000000000000000dEaD'] },
  run: async (context, { addresses }) => {
    const { database, now: at } = context
    const accountId = requirePerson(context).account.id
    const before = await readBlockedAddresses(database, { accountId, isLocked: true })
    const added = addresses.filter((address) => !before.includes(address))
    const removed = before.filter((address) => !addresses.includes(address))
    requireProofToLoosen(context, looserMembers(directions, { addresses: [...before] }, { addresses }))
    await changeBlockedAddresses(database, { accountId, added, removed, at })
    await recordChange(context, {
      action: 'blocked_addresses.set',
      object: { kind: 'account', id: accountId },
      before: { addresses: [...before] },
      after: { addresses },
    })
    return { addresses }
  },
})
