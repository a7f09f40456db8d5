import { z } from 'zod';
import 'zod-openapi';

const text = z.string().nullable();

/** Every field is there, null where it is unknown. */
export const company = z
  .object({
    name: text,
    website: text,
    brand_name: text.meta({
      description: 'A marketing or alternate name, not necessarily a registered brand.',
    }),
    linkedin_url: text,
    industry: text,
    industry_subcategory: text,
    employees: z
      .union([z.string(), z.int(), z.null()])
      .meta({ description: 'A count or a range, as given; large counts may be decimal strings.' }),
    revenue_band: text,
    annual_revenue: z
      .union([z.string(), z.int(), z.null()])
      .meta({ description: 'Currency and period are unspecified; may be a decimal string.' }),
    naics_code: text,
    sic_code: text,
    city: text,
    region: text,
    postal_code: text,
    country_code: text.meta({
      description: "Of the headquarters, which may differ from a visitor's country.",
    }),
    country_name: text,
  })
  .meta({ id: 'Company', description: 'A company; null means unknown, never zero.' });

export type ShownCompany = z.output<typeof company>;

/** What is known of the network of an address. */
export const network = z
  .object({
    connection_type: text,
    audience_type: text,
    audience_group: text,
    detail_level: text,
    is_isp: z
      .boolean()
      .nullable()
      .meta({ description: 'true: ISP; false: no ISP, which alone is no company match; null: unspecified.' }),
  })
  .meta({ id: 'Network', description: 'What is known of the network behind the address.' });
