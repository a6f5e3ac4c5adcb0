/** Routes of the public pages of requests for money, and of their x402 URLs. Both are found by an unguessable token alone. */
import type { Hono } from 'hono'
import { getAddress } from 'viem'
import { Failure } from '../../../core/failures/failure.ts'
import { chainFacts } from '../../../core/money/chains.ts'
import { stablecoins, toDecimal } from '../../../core/money/money.ts'
import type { Services } from '../../../kernel/context.ts'
import { findVirtualAccount } from '../../../rails/banking/store.ts'
import type { RequestSeller } from '../../../rails/selling/x402/request-sale.ts'
import { findWallet } from '../../../rails/wallets/store.ts'
import {
  findRequestByToken,
  type PaymentRequest,
  parseAsset,
  readOutstanding,
  readStatus,
} from '../../../records/requests/store.ts'
import { PAY_PATH } from '../../../records/requests/view.ts'
import { limitAddress } from '../limits.ts'
import type { Env, HttpContext } from '../request.ts'
import { isPaid, PAYMENT_HEADERS, readSentPayment, saleResponse } from '../x402.ts'
import { pageHeaders } from './headers.ts'
import { NoRequestPage, PayPage, type PayPageProps, type TransferWay } from './pay.tsx'

const TOKEN = /^[A-Za-z0-9_-]{24}$/

export function routePayPages(app: Hono<Env>, services: Services, seller: RequestSeller): void {
  const find = async (c: HttpContext) => {
    await limitAddress(services, c, 'pay_pages', { failClosed: isPaid(c), isMetered: false })
    const token = c.req.param('token') ?? ''
    return TOKEN.test(token) ? findRequestByToken(services.database, token) : undefined
  }
  app.get(`${PAY_PATH}/:token`, async (c) => {
    const request = await find(c)
    const page =
      request === undefined ? (
        <NoRequestPage />
      ) : (
        <PayPage {...(await readPageProps(services, request, services.onCalendar(c.get('now'))))} />
      )
    const headers = { ...pageHeaders, 'X-Robots-Tag': 'noindex, nofollow' }
    return c.html(`<!doctype html>${page.toString()}`, request === undefined ? 404 : 200, headers)
  })
  app.get(`${PAY_PATH}/:token/x402`, async (c) => {
    if (c.req.method === 'HEAD') {
      c.set('allow', 'GET')
      throw new Failure('method_not_allowed', 'HEAD is not supported for paid resources; use GET.')
    }
    const request = await find(c)
    const wallet =
      request === undefined || request.asset !== 'USDC'
        ? undefined
        : await findWallet(services.database, request.account_id)
    if (request === undefined || wallet === undefined)
      throw new Failure('not_found', 'There is no such request, or it is not paid by x402.', {
        hint: 'Ask the payee for the whole link.',
      })
    const sale = { request, wallet, path: `${PAY_PATH}/${request.token}/x402`, paymentPlace: PAYMENT_HEADERS }
    return saleResponse(await seller.sell({ ...sale, payment: readSentPayment(c) }))
  })
}

/** @param now of the calendar. */
async function readPageProps(services: Services, request: PaymentRequest, now: Date): Promise<PayPageProps> {
  const { settings } = services
  const asset = parseAsset(request.asset)
  const { units, received_units: received } = request
  return {
    status: readStatus(request, now),
    amount: toDecimal({ asset, units }),
    asset,
    outstanding: toDecimal({ asset, units: readOutstanding(request) }),
    received: toDecimal({ asset, units: received }),
    isOverpaid: received > units,
    isSandbox: settings.mode === 'sandbox',
    payee: request.payee,
    memo: request.memo,
    expiresAt: request.expires_at,
    transfer: await findTransferWay(services, request),
    bank: await findBankWay(services, request),
    x402Url: asset === 'USDC' ? `${settings.origin}${PAY_PATH}/${request.token}/x402` : null,
  }
}

async function findTransferWay(
  { database, chains }: Pick<Services, 'database' | 'chains'>,
  request: PaymentRequest,
): Promise<TransferWay | null> {
  const asset = stablecoins.find((token) => token === request.asset)
  const wallet = await findWallet(database, request.account_id)
  if (asset === undefined || wallet === undefined) return null
  const [first, ...more] = chains.all.filter(({ tokens }) => tokens[asset] !== undefined)
  const token = first?.tokens[asset]
  if (first === undefined || token === undefined) return null
  const address = getAddress(wallet)
  return {
    chain: nameChain(first.name),
    moreChains: more.map(({ name }) => nameChain(name)),
    address,
    // @see https://eips.ethereum.org/EIPS/eip-681
    link: `ethereum:${getAddress(token)}@${chainFacts(first.name).id}/transfer?address=${address}&uint256=${readOutstanding(request)}`,
  }
}

/** `base-sepolia` is Base Sepolia. */
function nameChain(name: string): string {
  return name.replaceAll(
    /(^|-)(\w)/g,
    (_, dash: string, letter: string) => `${dash && ' '}${letter.toUpperCase()}`,
  )
}

async function findBankWay({ database }: Pick<Services, 'database'>, request: PaymentRequest) {
  const { virtual_account_id: id, reference } = request
  const account = id === null ? undefined : await findVirtualAccount(database, { id })
  if (account === undefined || account.status !== 'active') return null
  const { instructions, bankName, currency } = account
  const numbers: readonly (readonly [string, string | undefined])[] = [
    ['Currency', currency],
    ['Bank', bankName],
    ['Routing number', 'routingNumber' in instructions ? instructions.routingNumber : undefined],
    ['IBAN', 'iban' in instructions ? instructions.iban : undefined],
    ['BIC', 'bic' in instructions ? instructions.bic : undefined],
    ['Sort code', 'sortCode' in instructions ? instructions.sortCode : undefined],
    ['IFSC', 'ifsc' in instructions ? instructions.ifsc : undefined],
    ['Account number', 'accountNumber' in instructions ? instructions.accountNumber : undefined],
  ]
  const details = numbers.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { details, reference }
}
