/** Configuration of compliance: sanctions, screening, thresholds, identity verification and our institution. */
import { z } from 'zod'
import { isLei } from '../base/lei.ts'

const url = z.url({ protocol: /^https?$/, abort: true })

/** Thresholds remain strings here; policies parse them. */
export const complianceVariables = {
  SANCTIONS_LIST: z.string().min(1).optional(),
  SCREENING_URL: url.optional(),
  SCREENING_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')
    .optional(),
  AML_VELOCITY: z.string().optional(),
  AML_STRUCTURING: z.string().optional(),
  TRAVEL_RULE_THRESHOLDS: z.string().optional(),
  TRAVEL_RULE_URL: url.optional(),
  TRAVEL_RULE_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')
    .optional(),
  KYC_LIMITS: z
    .string()
    .regex(/^none:\d{1,12},basic:\d{1,12}$/, 'must be none:<USD>,basic:<USD>, such as none:0,basic:10000')
    .optional(),
  SUMSUB_URL: url.default('https://api.sumsub.com'),
  SUMSUB_APP_TOKEN: z.string().min(1).max(256).optional(),
  SUMSUB_SECRET_KEY: z.string().min(1).max(256).optional(),
  SUMSUB_WEBHOOK_SECRET: z.string().min(1).max(256).optional(),
  SUMSUB_LEVELS: z
    .string()
    .regex(/^[\w -]{1,64},[\w -]{1,64}$/, 'must name two Sumsub levels: basic,full')
    .default('basic-kyc-level,full-kyc-level'),
  VASP_NAME: z.string().trim().min(1).max(100).default('Bursar'),
  VASP_LEI: z
    .string()
    .refine(
      isLei,
      'must be a Legal Entity Identifier: 20 capital letters and digits, ending in two check digits',
    )
    .optional(),
}

const variables = z.object(complianceVariables)

export interface ComplianceConfig {
  /** Path of a sanctions list that replaces the bundled one; null uses the bundled list. */
  readonly sanctionsList: string | null
  /** Address screening provider; null disables it. */
  readonly screening: { readonly url: string; readonly apiKey: string | null } | null
  /** Raw values of `AML_VELOCITY`, `AML_STRUCTURING` and `TRAVEL_RULE_THRESHOLDS`. */
  readonly aml: {
    readonly velocity: string | null
    readonly structuring: string | null
    readonly thresholds: string | null
  }
  /** Travel Rule network; null uses the sandbox's own, and none in production. */
  readonly travelRule: { readonly url: string; readonly apiKey: string | null } | null
  /** Maximum value of one spend by verification level, in whole USD; null uses the mode's defaults. */
  readonly kycLimits: { readonly none: bigint; readonly basic: bigint } | null
  /** Identity reviewer; null uses the sandbox's own, and none in production. */
  readonly sumsub: {
    readonly url: string
    readonly appToken: string
    readonly secretKey: string
    /** Null: reviews are polled only. */
    readonly webhookSecret: string | null
    readonly levels: { readonly basic: string; readonly full: string }
  } | null
  /** Originating institution in Travel Rule data. */
  readonly vasp: { readonly name: string; readonly lei: string | null }
}

/** Variables that must be set together: half of them would be no reviewer in production, and the sandbox's own elsewhere. */
export const complianceGroups = [['SUMSUB_APP_TOKEN', 'SUMSUB_SECRET_KEY']] as const

/** Default provider when only an API key is configured. */
const CHAINALYSIS = 'https://public.chainalysis.com'

export function readCompliance(settings: z.output<typeof variables>): ComplianceConfig {
  const { SCREENING_URL: screeningUrl, SCREENING_API_KEY: apiKey } = settings
  return {
    sanctionsList: settings.SANCTIONS_LIST ?? null,
    screening:
      screeningUrl === undefined && apiKey === undefined
        ? null
        : { url: screeningUrl ?? CHAINALYSIS, apiKey: apiKey ?? null },
    aml: {
      velocity: settings.AML_VELOCITY ?? null,
      structuring: settings.AML_STRUCTURING ?? null,
      thresholds: settings.TRAVEL_RULE_THRESHOLDS ?? null,
    },
    travelRule:
      settings.TRAVEL_RULE_URL === undefined
        ? null
        : { url: settings.TRAVEL_RULE_URL, apiKey: settings.TRAVEL_RULE_API_KEY ?? null },
    kycLimits: parseKycLimits(settings.KYC_LIMITS),
    sumsub: readSumsub(settings),
    vasp: { name: settings.VASP_NAME, lei: settings.VASP_LEI ?? null },
  }
}

function parseKycLimits(stated: string | undefined): ComplianceConfig['kycLimits'] {
  const [, none = '', basic = ''] = /^none:(\d+),basic:(\d+)$/.exec(stated ?? '') ?? []
  return none === '' ? null : { none: BigInt(none), basic: BigInt(basic) }
}

function readSumsub(settings: z.output<typeof variables>): ComplianceConfig['sumsub'] {
  const { SUMSUB_URL, SUMSUB_APP_TOKEN: appToken, SUMSUB_SECRET_KEY: secretKey, SUMSUB_LEVELS } = settings
  if (appToken === undefined || secretKey === undefined) return null
  const [basic = '', full = ''] = SUMSUB_LEVELS.split(',')
  const webhookSecret = settings.SUMSUB_WEBHOOK_SECRET ?? null
  return { url: SUMSUB_URL, appToken, secretKey, webhookSecret, levels: { basic, full } }
}
