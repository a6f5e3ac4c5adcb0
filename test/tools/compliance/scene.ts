/** A funded, verified guest on a database, and the transfers of the AML tests. */
import { z } from 'zod'
import type { AmlLimits } from '../../../policies/aml/limits.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { Stablecoin } from '../../../src/core/money/money.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { bookDeposit } from '../../../src/rails/wallets/open-wallet.ts'
import guest from '../../../tools/auth/guest.ts'
import kyc from '../../../tools/compliance/kyc.ts'
import travelRule from '../../../tools/compliance/travel-rule.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { buildCall, noon } from '../../kernel/scene.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'

/** An address outside the gateway. */
export const outsideAddress = `0x${'c1'.repeat(20)}`

/** Members of a transfer request in these tests. */
export interface TransferInput {
  readonly amount: string
  readonly token?: Stablecoin
  readonly destination?: string
}

/** A guest. @property send sends a transfer. @property disclose records Travel Rule data. */
export interface Payer extends SignedIn {
  readonly address: string
  send(overrides: TransferInput, how?: { at?: Date; idempotencyKey?: string }): ReturnType<SignedIn['call']>
  disclose(
    members: Record<string, unknown>,
    how?: { idempotencyKey?: string },
  ): Promise<Record<string, unknown>>
}

/** A person whose identity is verified at once. */
export const applicant = {
  firstName: 'Ada',
  lastName: 'Lovelace',
  dateOfBirth: '1990-12-10',
  country: 'BR',
  address: 'Rua Augusta 1, São Paulo',
}

/** A new guest with a million of each token. @param isVerified whether the identity is verified: `Ada Lovelace`, of Brazil. */
export async function newPayer(services: Services, isVerified = true): Promise<Payer> {
  const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
  const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
  const { address } = await services.database.kysely
    .selectFrom('wallet')
    .select('address')
    .where('account_id', '=', account.id)
    .executeTakeFirstOrThrow()
  const funds = (['USDC', 'EURC', 'USDT'] as const).map((asset) => ({ asset, units: 10n ** 12n }))
  const parts = { ...services, newId }
  await bookDeposit(parts, { accountId: account.id, funds, reference: 'test', at: noon })
  await services.chain.mint(
    funds.map(({ asset, units }) => ({ token: asset, to: `0x${address.slice(2)}`, units })),
  )
  const person = await signInAgain(services, account.id)
  if (isVerified) await person.call(kyc, { applicant })
  return {
    ...person,
    address,
    send: (overrides, how) =>
      person.call(transfer, { destination: outsideAddress, signature: 'sandbox', ...overrides }, how),
    disclose: async (members, how) =>
      (
        await person.call(
          travelRule,
          { amount: '1500', destination: outsideAddress, beneficiary: { name: 'Grace Hopper' }, ...members },
          how,
        )
      ).body,
  }
}

/** The same services with other AML limits. */
export function withLimits(services: Services, aml: Partial<AmlLimits>): Services {
  return { ...services, settings: { ...services.settings, aml: { ...services.settings.aml, ...aml } } }
}

/** The refusal of a transfer that needs a review by these rules. */
export function reviewFor(...lists: string[]) {
  return { code: 'aml_blocked', members: { screening: { result: 'review', lists } } }
}
